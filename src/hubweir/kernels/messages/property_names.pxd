"""Names of the fields of the properties section, compiled. (AMQP part 3 section 3.2.4) The twin: text.py."""

from libc.stdint cimport uint8_t

cdef enum:
    PROPERTY_COUNT = 13

cdef extern from *:
    """
    static const char* const hubweir_property_names[13] = {
        "message-id", "user-id", "to", "subject", "reply-to", "correlation-id", "content-type", "content-encoding",
        "absolute-expiry-time", "creation-time", "group-id", "group-sequence", "reply-to-group-id",
    };
    static const int hubweir_property_sizes[13] = {10, 7, 2, 7, 8, 14, 12, 16, 20, 13, 8, 14, 17};
    """
    const char* property_names "hubweir_property_names" [13]
    const int property_sizes "hubweir_property_sizes" [13]
