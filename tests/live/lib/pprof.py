"""A small pprof decoder, and the rules that a file must obey to be imported without loss by Perfetto and pprof."""

import gzip

from wire import BYTES, fields, ints, signed


def scalars(data):
    return {number: value for number, _, value in fields(data)}


class Profile:
    def __init__(self, data):
        if data[:2] == b"\x1f\x8b":
            data = gzip.decompress(data)
        self.unknown_fields = []
        self.strings, self.sample_types = [], []
        self.samples, self.mappings, self.locations, self.functions = [], {}, {}, {}
        self.scalar = {}
        handlers = {1: self._sample_type, 2: self._sample, 3: self._mapping, 4: self._location, 5: self._function}
        for number, kind, value in fields(data):
            if number in handlers:
                handlers[number](value)
            elif number == 6:
                self.strings.append(value.decode("utf-8"))
            elif number <= 14:
                self.scalar.setdefault(number, []).append((kind, value))
            else:
                self.unknown_fields.append(number)

    def _sample_type(self, data):
        message = scalars(data)
        self.sample_types.append((message.get(1, 0), message.get(2, 0)))

    def _sample(self, data):
        locations, values, labels = [], [], []
        for number, kind, value in fields(data):
            if number == 1:
                locations += ints(kind, value)
            elif number == 2:
                values += [signed(v) for v in ints(kind, value)]
            elif number == 3:
                labels.append(scalars(value))
        self.samples.append((locations, values, labels))

    def _mapping(self, data):
        message = scalars(data)
        self.mappings[message.get(1, 0)] = message

    def _location(self, data):
        lines = [scalars(value) for number, kind, value in fields(data) if number == 4 and kind == BYTES]
        message = {n: v for n, _, v in fields(data) if n != 4}
        self.locations[message.get(1, 0)] = (message, lines)

    def _function(self, data):
        message = scalars(data)
        self.functions[message.get(1, 0)] = message

    def text(self, index):
        return self.strings[index]

    def types(self):
        return [(self.text(kind), self.text(unit)) for kind, unit in self.sample_types]

    def names_of(self, location_id):
        """Outermost first."""
        _, lines = self.locations[location_id]
        return [self.text(self.functions[line[1]][2]) for line in reversed(lines)]

    def stacks(self, value_type):
        """(names root first, value) for each sample, of the value type of this name."""
        column = [kind for kind, _ in self.types()].index(value_type)
        for locations, values, _ in self.samples:
            names = []
            for location in reversed(locations):
                names += self.names_of(location)
            yield names, values[column]

    def share_of(self, value_type, name):
        from folded import matches

        total = hit = 0
        for names, value in self.stacks(value_type):
            total += value
            hit += value if any(matches(n, name) for n in names) else 0
        return hit / total if total else 0.0

    def label_sets(self):
        """For each sample: {key: text or number}."""
        for _, _, labels in self.samples:
            yield {self.text(label[1]): self.text(label[2]) if label.get(2) else label.get(3, 0) for label in labels}

    def broken_rules(self):
        """What an importer would lose or choke on; empty when all is well."""
        broken = []
        if self.unknown_fields:
            broken.append(f"top-level fields beyond 14: {sorted(set(self.unknown_fields))}")
        if not self.strings or self.strings[0] != "":
            broken.append("string_table[0] is not empty")
        seen = set()
        for ident, (message, lines) in self.locations.items():
            address, mapping = message.get(3, 0), message.get(2, 0)
            if mapping not in self.mappings:
                broken.append(f"location {ident} has no mapping")
            if address == 0 or (mapping, address) in seen:
                broken.append(f"location {ident}: its address {address:#x} is 0 or not unique in its mapping")
            seen.add((mapping, address))
            broken += [f"location {ident}: no function {line.get(1)}" for line in lines if line.get(1) not in self.functions]
        for ident, mapping in self.mappings.items():
            start, limit = mapping.get(2, 0), mapping.get(3, 0)
            if limit < start:
                broken.append(f"mapping {ident}: limit {limit:#x} below start {start:#x}")
        for number, (locations, values, _) in enumerate(self.samples):
            if len(values) != len(self.sample_types):
                broken.append(f"sample {number}: {len(values)} values for {len(self.sample_types)} types")
            if not locations or any(location not in self.locations for location in locations):
                broken.append(f"sample {number}: no location, or one that is not defined")
        for ident, function in self.functions.items():
            if not self.strings[function.get(2, 0)]:
                broken.append(f"function {ident} has no name")
        return broken
