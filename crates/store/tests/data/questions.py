"""The questions of docs/recording.md, asked by DuckDB; and host.parquet, read column by column by pyarrow. Prints JSON."""

import json
import os
import re
import sys

import duckdb
import pyarrow.parquet

document, recording = sys.argv[1:]
questions = re.findall(r"```sql\n(.*?)```", open(document, encoding="utf-8").read(), re.S)
os.chdir(recording)
duckdb.sql("SET TimeZone = 'UTC'")
# As texts: DuckDB gives times with a zone to Python only where `pytz` is installed.
texts = [f"SELECT COLUMNS(*)::VARCHAR FROM ({question.strip().rstrip(';')})" for question in questions]
answers = [[list(row) for row in duckdb.sql(text).fetchall()] for text in texts]
columns = {}
for segment in sorted(os.listdir("segments")):
    table = pyarrow.parquet.read_table(f"segments/{segment}/host.parquet")
    for name in table.column_names:
        values = table.column(name)
        values = values.cast("int64") if name == "time" else values
        columns.setdefault(name, []).extend(values.to_pylist())
json.dump({"answers": answers, "columns": columns}, sys.stdout)
