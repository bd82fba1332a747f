"""Times as text and back, compiled, in the calendar of today carried backwards. The twins: text.py and
read_capture.py."""

from libc.stdint cimport int64_t, uint8_t

from hubweir.kernels.columns.decimals cimport write_padded, write_signed

cdef enum:
    DAY_MS = 86400000
    EPOCH_DAY = 719468  # days from 1 March of the year 0 to 1970
    TIME_SIZE = 32  # room that a time's text takes at most

cdef struct Moment:
    int year
    int month
    int day
    int hour
    int minute
    int second
    int ms


cdef inline int64_t days_of(int64_t year, int64_t month, int64_t day) noexcept nogil:
    cdef int64_t era, of_era
    if month <= 2:
        year -= 1
    era = year // 400  # never negative here: the least year is 1, carried back to 0
    of_era = year - era * 400
    day += (153 * (month + (9 if month <= 2 else -3)) + 2) // 5 - 1
    return era * 146097 + of_era * 365 + of_era // 4 - of_era // 100 + day - EPOCH_DAY


cdef inline bint open_moment(int64_t time_ms, Moment* moment) noexcept nogil:
    """Fill moment; false outside the years 1 to 9999."""
    cdef int64_t days, ms, era, day, year, month
    if time_ms < -<int64_t>62135596800000 or time_ms > <int64_t>253402300799999:
        return False
    days = time_ms // DAY_MS
    ms = time_ms - days * DAY_MS
    if ms < 0:  # C divides towards zero
        ms += DAY_MS
        days -= 1
    days += EPOCH_DAY  # not negative: the year 1 is behind the year 0
    era = days // 146097
    day = days - era * 146097
    year = (day - day // 1460 + day // 36524 - day // 146096) // 365
    day -= 365 * year + year // 4 - year // 100
    month = (5 * day + 2) // 153
    moment.day = <int>(day - (153 * month + 2) // 5 + 1)
    moment.month = <int>(month + 3 if month < 10 else month - 9)
    moment.year = <int>(year + era * 400 + (1 if moment.month <= 2 else 0))
    moment.hour = <int>(ms // 3600000)
    moment.minute = <int>(ms // 60000 % 60)
    moment.second = <int>(ms // 1000 % 60)
    moment.ms = <int>(ms % 1000)
    return True


cdef inline int write_time(uint8_t* to, int64_t time_ms) noexcept nogil:
    """ISO 8601 with milliseconds, or the number; how many bytes that took (to has TIME_SIZE)."""
    cdef Moment moment
    if not open_moment(time_ms, &moment):
        return write_signed(to, time_ms)
    write_padded(to, moment.year, 4)
    to[4] = c"-"
    write_padded(to + 5, moment.month, 2)
    to[7] = c"-"
    write_padded(to + 8, moment.day, 2)
    to[10] = c"T"
    write_padded(to + 11, moment.hour, 2)
    to[13] = c":"
    write_padded(to + 14, moment.minute, 2)
    to[16] = c":"
    write_padded(to + 17, moment.second, 2)
    to[19] = c"."
    write_padded(to + 20, moment.ms, 3)
    to[23] = c"Z"
    return 24


cdef inline int write_us_time(uint8_t* to, int64_t time_ms) noexcept nogil:
    """`M/d/yyyy h:mm:ss tt`, or the number; how many bytes that took (to has TIME_SIZE)."""
    cdef Moment moment
    cdef int at
    if not open_moment(time_ms, &moment):
        return write_signed(to, time_ms)
    at = write_signed(to, moment.month)
    to[at] = c"/"
    at += 1
    at += write_signed(to + at, moment.day)
    to[at] = c"/"
    write_padded(to + at + 1, moment.year, 4)
    to[at + 5] = c" "
    at += 6
    at += write_signed(to + at, 12 if moment.hour % 12 == 0 else moment.hour % 12)
    to[at] = c":"
    write_padded(to + at + 1, moment.minute, 2)
    to[at + 3] = c":"
    write_padded(to + at + 4, moment.second, 2)
    to[at + 6] = c" "
    to[at + 7] = c"A" if moment.hour < 12 else c"P"
    to[at + 8] = c"M"
    return at + 9


cdef inline int64_t digits_at(
    const uint8_t* text, int64_t* at, int64_t size, int64_t least, int64_t most
) noexcept nogil:
    """The number that least to most digits at at[0] spell, as many as there are; -1 when there are fewer."""
    cdef int64_t value = 0, count = 0
    while count < most and at[0] < size and c"0" <= text[at[0]] <= c"9":
        value = value * 10 + (text[at[0]] - c"0")
        at[0] += 1
        count += 1
    return value if count >= least else -1


cdef inline bint passed(const uint8_t* text, int64_t* at, int64_t size, uint8_t wanted) noexcept nogil:
    if at[0] < size and text[at[0]] == wanted:
        at[0] += 1
        return True
    return False


cdef inline bint read_clock(const uint8_t* text, int64_t* at, int64_t size, int64_t least, Moment* moment) noexcept nogil:
    moment.hour = <int>digits_at(text, at, size, least, 2)
    if moment.hour < 0 or not passed(text, at, size, c":"):
        return False
    moment.minute = <int>digits_at(text, at, size, 2, 2)
    if moment.minute < 0 or not passed(text, at, size, c":"):
        return False
    moment.second = <int>digits_at(text, at, size, 2, 2)
    return moment.second >= 0


cdef inline bint read_iso(const uint8_t* text, int64_t size, Moment* moment) noexcept nogil:
    cdef int64_t at = 0, begun, value
    moment.year = <int>digits_at(text, &at, size, 4, 4)
    if moment.year < 0 or not passed(text, &at, size, c"-"):
        return False
    moment.month = <int>digits_at(text, &at, size, 2, 2)
    if moment.month < 0 or not passed(text, &at, size, c"-"):
        return False
    moment.day = <int>digits_at(text, &at, size, 2, 2)
    if moment.day < 0 or not (passed(text, &at, size, c"T") or passed(text, &at, size, c" ")):
        return False
    if not read_clock(text, &at, size, 2, moment):
        return False
    moment.ms = 0
    if passed(text, &at, size, c"."):
        begun = at
        value = digits_at(text, &at, size, 1, 9)
        if value < 0:
            return False
        for begun in range(at - begun, 3):
            value *= 10
        while value > 999:
            value //= 10
        moment.ms = <int>value
    if passed(text, &at, size, c"Z"):
        return at == size
    if at == size:
        return True
    return (
        passed(text, &at, size, c"+") and digits_at(text, &at, size, 2, 2) == 0 and passed(text, &at, size, c":")
        and digits_at(text, &at, size, 2, 2) == 0 and at == size
    )


cdef inline bint read_us(const uint8_t* text, int64_t size, Moment* moment) noexcept nogil:
    cdef int64_t at = 0
    cdef bint late
    moment.month = <int>digits_at(text, &at, size, 1, 2)
    if moment.month < 0 or not passed(text, &at, size, c"/"):
        return False
    moment.day = <int>digits_at(text, &at, size, 1, 2)
    if moment.day < 0 or not passed(text, &at, size, c"/"):
        return False
    moment.year = <int>digits_at(text, &at, size, 4, 4)
    if moment.year < 0 or not passed(text, &at, size, c" ") or not read_clock(text, &at, size, 1, moment):
        return False
    moment.ms = 0
    if at == size:
        return True
    if not passed(text, &at, size, c" "):
        return False
    late = passed(text, &at, size, c"P") or passed(text, &at, size, c"p")
    if not late and not (passed(text, &at, size, c"A") or passed(text, &at, size, c"a")):
        return False
    if not (passed(text, &at, size, c"M") or passed(text, &at, size, c"m")) or at != size:
        return False
    if moment.hour < 1 or moment.hour > 12:
        return False
    moment.hour = moment.hour % 12 + (12 if late else 0)
    return True


cdef inline bint read_time(const uint8_t* text, int64_t size, int64_t* time_ms) noexcept nogil:
    """The time that text spells in one of the forms of the contract; false when it spells none."""
    cdef Moment moment
    cdef int most = 31
    if not read_iso(text, size, &moment) and not read_us(text, size, &moment):
        return False
    if moment.month == 2:
        most = 29
    elif moment.month == 4 or moment.month == 6 or moment.month == 9 or moment.month == 11:
        most = 30
    if moment.year < 1 or moment.month < 1 or moment.month > 12 or moment.day < 1 or moment.day > most:
        return False
    if moment.hour > 23 or moment.minute > 59 or moment.second > 59:
        return False
    time_ms[0] = (
        (days_of(moment.year, moment.month, moment.day) * 86400 + moment.hour * 3600 + moment.minute * 60 + moment.second)
        * 1000 + moment.ms
    )
    return True
