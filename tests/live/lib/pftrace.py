"""A small decoder of Perfetto traces, strict about every rule whose breach an importer punishes with silence."""

from wire import BYTES, VARINT, fields, signed

BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4
CLEARED, NEEDS = 1, 2
BOOTTIME = 6


class Sequence:
    def __init__(self):
        self.valid = False
        self.names, self.functions, self.frames, self.callstacks, self.mappings, self.paths = {}, {}, {}, {}, {}, {}


class Trace:
    def __init__(self, data):
        self.broken = []
        self.sequences = {}
        self.tracks = {}     # uuid -> {name, pid, tid, parent}
        self.open = {}       # uuid -> [(name, begin)]
        self.slices = []     # (uuid, name, begin, duration, depth)
        self.samples = []    # (time, pid, tid, [names root first])
        self.clocks = set()
        self.used_tracks = set()
        self._packets = 0
        for number, kind, value in fields(data):
            if number != 1 or kind != BYTES:
                self._break(f"top-level field {number}")
                continue
            self._packet(value)
        self._finish()

    def _break(self, what):
        if len(self.broken) < 50:
            self.broken.append(what)

    def _packet(self, data):
        self._packets += 1
        packet = {}
        for number, _, value in fields(data):
            packet.setdefault(number, []).append(value)
        one = lambda number, default=None: packet.get(number, [default])[-1]
        flags, sequence_id = one(13, 0), one(10, 0)
        if sequence_id == 0 and flags & NEEDS:
            self._break("SEQ_NEEDS_INCREMENTAL_STATE without a sequence id")
        sequence = self.sequences.setdefault(sequence_id, Sequence())
        if one(42):
            sequence.valid = False
        if flags & CLEARED:
            self.sequences[sequence_id] = sequence = Sequence()
            sequence.valid = True
        if 12 in packet:
            for interned in packet[12]:
                self._intern(sequence, interned)
        if 6 in packet:
            self._clock_snapshot(one(6))
        if 60 in packet:
            self._descriptor(one(60))
        self._check_flags(packet, flags, sequence)
        time = one(8, 0)
        if 11 in packet:
            self._event(sequence, sequence_id, time, one(58), one(11))
        if 66 in packet:
            self._sample(sequence, time, one(58), one(66))

    def _check_flags(self, packet, flags, sequence):
        if flags & NEEDS and not sequence.valid:
            self._break("a packet needs incremental state before it was cleared")
        if 12 in packet and not sequence.valid:
            self._break("interned data before SEQ_INCREMENTAL_STATE_CLEARED")

    def _check_clock(self, time, clock):
        if clock is not None and clock != BOOTTIME and clock not in self.clocks:
            self._break(f"clock {clock} is used without a snapshot")
        if time >= 1 << 63:
            self._break("a timestamp of 2^63 or more")

    def _clock_snapshot(self, data):
        ids = {dict((n, v) for n, _, v in fields(value)).get(1) for number, _, value in fields(data) if number == 1}
        if BOOTTIME not in ids:
            self._break("a clock snapshot without BOOTTIME")
        self.clocks |= ids

    def _intern(self, sequence, data):
        tables = {2: sequence.names, 5: sequence.functions, 17: sequence.paths}
        for number, _, value in fields(data):
            message = {}
            for n, kind, v in fields(value):
                message.setdefault(n, []).append((kind, v))
            ident = message.get(1, [(0, 0)])[-1][1]
            if ident == 0:
                self._break(f"interned field {number} with iid 0")
            if number in tables:
                tables[number].setdefault(ident, message.get(2, [(0, b"")])[-1][1].decode("utf-8"))
            elif number == 6:
                self._intern_frame(sequence, ident, message)
            elif number == 7:
                self._intern_callstack(sequence, ident, message)
            elif number == 19:
                sequence.mappings.setdefault(ident, message)

    def _intern_frame(self, sequence, ident, message):
        function = message.get(2, [(0, 0)])[-1][1]
        mapping = message.get(3, [(0, 0)])[-1][1]
        if function not in sequence.functions:
            self._break(f"frame {ident}: function name {function} is not defined")
        if mapping and mapping not in sequence.mappings:
            self._break(f"frame {ident}: mapping {mapping} is not defined")
        sequence.frames.setdefault(ident, function)

    def _intern_callstack(self, sequence, ident, message):
        ids = []
        for kind, value in message.get(2, []):
            if kind != VARINT:
                self._break(f"callstack {ident}: frame_ids are packed")
                return
            ids.append(value)
        if not ids or any(frame not in sequence.frames for frame in ids):
            self._break(f"callstack {ident}: no frame, or one that is not defined")
        sequence.callstacks.setdefault(ident, ids)

    def _descriptor(self, data):
        track = {"name": "", "pid": None, "tid": None, "parent": 0, "counter": False}
        uuid = None
        for number, _, value in fields(data):
            if number == 1:
                uuid = value
            elif number == 2:
                track["name"] = value.decode("utf-8")
            elif number in (3, 4):
                message = {n: v for n, _, v in fields(value)}
                track["pid"] = message.get(1)
                track["tid"] = message.get(2) if number == 4 else None
                name = message.get(6 if number == 3 else 5, b"")
                track["name"] = track["name"] or (name.decode("utf-8") if isinstance(name, bytes) else "")
                if number == 4 and (message.get(1) is None or message.get(2) is None):
                    self._break("a thread descriptor without pid and tid")
            elif number == 5:
                track["parent"] = value
            elif number == 8:
                track["counter"] = True
        if uuid is None:
            self._break("a track descriptor without uuid")
        self.tracks[uuid] = track

    def _event(self, sequence, sequence_id, time, clock, data):
        event = {n: v for n, _, v in fields(data)}
        self._check_clock(time, clock)
        uuid, kind = event.get(11), event.get(9)
        self.used_tracks.add(uuid)
        if sequence_id == 0:
            self._break("a track event without sequence id")
        name = event[23].decode("utf-8") if 23 in event else sequence.names.get(event.get(10))
        stack = self.open.setdefault(uuid, [])
        if kind == BEGIN:
            if not name:
                self._break("a slice without a name")
            stack.append((name, time))
            if len(stack) > 512:
                self._break("slices nested deeper than 512")
        elif kind == END:
            if not stack:
                self._break("an END without a BEGIN")
                return
            name, begin = stack.pop()
            if time < begin:
                self._break(f"slice {name} ends before it begins")
            self.slices.append((uuid, name, begin, time - begin, len(stack)))

    def _sample(self, sequence, time, clock, data):
        sample = {n: v for n, _, v in fields(data)}
        self._check_clock(time, clock)
        frames = sequence.callstacks.get(sample.get(4))
        if frames is None:
            self._break(f"perf sample: callstack {sample.get(4)} is not defined")
            return
        names = [sequence.functions[sequence.frames[frame]] for frame in frames]
        self.samples.append((time, signed(sample.get(2, 0)), signed(sample.get(3, 0)), names))

    def _finish(self):
        threads = {}
        for uuid, track in self.tracks.items():
            if track["parent"] and track["parent"] not in self.tracks:
                self._break(f"track {uuid}: parent {track['parent']} is never declared")
            if track["tid"] is not None and threads.setdefault((track["pid"], track["tid"]), uuid) != uuid:
                self._break(f"thread {track['tid']} has two tracks")
        for uuid in self.used_tracks:
            if uuid not in self.tracks:
                self._break(f"events on track {uuid}, which is never declared")
        for uuid, stack in self.open.items():
            if stack:
                self._break(f"track {uuid}: {len(stack)} slices are never closed")

    def time_share_of(self, name):
        """Share of slice time at depth 0 that slices of this name cover."""
        from folded import matches

        whole = sum(duration for _, _, _, duration, depth in self.slices if depth == 0)
        part = sum(duration for _, slice_name, _, duration, _ in self.slices if matches(slice_name, name))
        return part / whole if whole else 0.0
