CREATE DATABASE test;
CREATE TABLE test.rows (id INT PRIMARY KEY, text VARCHAR(255));
INSERT INTO test.rows SELECT seq, CONCAT(MD5(seq), MD5(seq + 1), MD5(seq + 2)) FROM test.seq_1_to_30000;
