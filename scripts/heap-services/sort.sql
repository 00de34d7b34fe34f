-- One client: sorts without an index in a buffer of its own; what its thread freed stays in its arena.
SET SESSION sort_buffer_size = 8388608;
SELECT COUNT(*) FROM (SELECT id, text FROM test.rows ORDER BY REVERSE(text), id LIMIT 30000) AS sorted;
SELECT COUNT(*) FROM (SELECT LEFT(text, 3) AS start, GROUP_CONCAT(text) FROM test.rows GROUP BY start ORDER BY start) AS grouped;
