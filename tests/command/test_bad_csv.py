"""Bad CSV: encodings, separators, decimal signs, headers, rows that do not fit."""

import pytest
from bad_input import Refused, X, Y, assert_refused, avatars, csv_text, originals, parameters, renamed

BAD_CSV = {
    "an empty CSV": Refused(files={"o.csv": ""}, problems=["originals | o.csv' | empty | header"]),
    "nothing but a byte order mark": Refused(files={"o.csv": b"\xef\xbb\xbf"}, problems=["originals | o.csv'"]),
    "only a header": Refused(files={"o.csv": "id,x\n"}, problems=["o.csv' | no rows"]),
    "only a header on both sides": Refused(
        files={"o.csv": "id,x\n", "a.csv": "id,x\n"}, problems=["o.csv' | no rows", "a.csv' | no rows"]
    ),
    "UTF-16": Refused(files={"o.csv": csv_text(originals()).encode("utf-16")}, problems=["o.csv' | UTF-8"]),
    "UTF-16 without a mark": Refused(
        files={"o.csv": csv_text(originals()).encode("utf-16-le")}, problems=["o.csv' | UTF-8"]
    ),
    "Latin-1 in a name": Refused(
        files={"o.csv": csv_text(renamed(originals(), x="é")).encode("latin-1")}, problems=["o.csv' | header | UTF-8"]
    ),
    "Latin-1 in a value": Refused(
        files={"o.csv": csv_text(originals(id=["é", "b", "c", "d"])).encode("latin-1")},
        problems=["o.csv' | 1 of 4 rows | UTF-8"],
    ),
    "semicolons": Refused(files={"o.csv": csv_text(originals(), ";")}, problems=["o.csv' | semicolons | commas"]),
    "semicolons and decimal commas": Refused(
        files={"o.csv": csv_text(originals(y=X), ";", ",")}, problems=["o.csv' | semicolons | decimal points"]
    ),
    "tabs": Refused(files={"o.csv": csv_text(originals(), "\t")}, problems=["o.csv' | tabs | commas"]),
    "bars": Refused(files={"o.csv": csv_text(originals(), "|")}, problems=["o.csv' | bars | commas"]),
    "decimal commas that break rows": Refused(
        files={"o.csv": csv_text(originals(), point=",")}, problems=["o.csv' | 4 of 4 rows | one value per column"]
    ),
    "decimal commas in quotes": Refused(
        files={
            "o.csv": csv_text(originals(y=[f'"{v},5"' for v in range(4)])),
            "a.csv": csv_text(avatars(y=[f'"{v},5"' for v in range(6)])),
        },
        problems=["o.csv' | 'y' | 4 | decimal points", "a.csv' | 'y' | 6 | decimal points"],
    ),
    "a blank before each number": Refused(
        files={
            "o.csv": csv_text(originals(y=[f" {v}" for v in X])),
            "a.csv": csv_text(avatars(y=[f" {v}" for v in Y])),
        },
        problems=["o.csv' | 'y' | 4", "a.csv' | 'y' | 6"],
    ),
    "one number with a unit": Refused(
        files={"o.csv": csv_text(originals(x=[*X[:3], "7391 kg"]))}, problems=["o.csv' | 'x' | 1 of its 4 | no units"]
    ),
    "one number of thousands": Refused(
        files={"o.csv": csv_text(originals(x=[*X[:3], '"739,180.0"']))}, problems=["o.csv' | 'x' | 1 of its 4"]
    ),
    "NA for a missing number": Refused(
        files={"o.csv": csv_text(originals(x=[*X[:3], "NA"]))}, problems=["o.csv' | 'x' | 1 of its 4"]
    ),
    "a number of another script": Refused(
        files={"o.csv": csv_text(originals(x=[*X[:3], "٧"]))}, problems=["o.csv' | 'x' | 1 of its 4"]
    ),
    "a number too large": Refused(
        files={"o.csv": csv_text(originals(x=[*X[:3], "1e7391"]))}, problems=["o.csv' | 'x' | infinite | 1 of 4"]
    ),
    "an empty value": Refused(
        files={"o.csv": csv_text(originals(x=[*X[:3], ""]))}, problems=["o.csv' | 'x' | null | 1 of 4"]
    ),
    "NaN in CSV": Refused(
        files={"o.csv": csv_text(originals(x=[*X[:3], "nan"]))}, problems=["o.csv' | 'x' | NaN | 1 of 4"]
    ),
    "names twice in CSV": Refused(files={"o.csv": "id,x,x\n73911,1,2\n"}, problems=["o.csv' | x | same name | rename"]),
    "names twice but for case in CSV": Refused(
        files={"o.csv": "id,x,X\n73911,1,2\n"}, problems=["o.csv' | x | X | same name | rename"]
    ),
    "names twice but for the case of É": Refused(
        files={"o.csv": "id,é,É\n73911,1,2\n"}, problems=["o.csv' | é | É | same name | rename"]
    ),
    "a column without a name": Refused(
        files={"o.csv": "id,,x\n73911,1,2\n"}, problems=["o.csv' | 1 column(s) have no name"]
    ),
    "a comma at the end of each line but the first": Refused(
        files={"o.csv": "id,x\n73911,1,\n73912,2,\n"}, problems=["o.csv' | 2 of 2 rows | one value per column"]
    ),
    "too few values": Refused(
        files={"o.csv": "id,x\n73911,1\n73912\n"}, problems=["o.csv' | 1 of 2 rows | one value per column"]
    ),
    "a title above the header": Refused(
        files={"o.csv": "Export of 7391\nid,x\n73911,1\n"}, problems=["o.csv' | 2 of 2 rows | one value per column"]
    ),
    "a quote that never ends": Refused(
        files={"o.csv": 'id,x\n"73911,1\n73912,2\n'}, problems=["o.csv' | rows | double quotes"]
    ),
    "a line break in quotes": Refused(files={"o.csv": 'id,x\n"7391\n1",1\n'}, problems=["o.csv' | rows | line breaks"]),
    "a folder of headers that differ": Refused(
        files={"f/1.csv": "id,x\n73911,1\n", "f/2.csv": "x,id\n1,73912\n"},
        arguments="--originals csv:{}/f",
        problems=["f' | header"],
    ),
}


@pytest.mark.parametrize("case", parameters(BAD_CSV))
def test_bad_csv_is_refused_and_nothing_is_written(run_case, case):
    assert_refused(run_case, case)
