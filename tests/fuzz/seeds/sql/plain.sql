SELECT stack(0), name, x'00ff', 'it''s', [a b] FROM top_functions -- hot
/* all */ WHERE contains(0, 'main'); DELETE FROM thread; PRAGMA table_info(thread)