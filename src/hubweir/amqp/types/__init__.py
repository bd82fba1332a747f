"""The type system of AMQP 1.0 (part 1): bytes to values and back. Floor: codec.

Start with values.py, which says which Python type stands for which AMQP type. decode.py turns bytes of a peer into
values and is where every limit on them is kept; encode.py does the reverse with the smallest encoding. composite.py
lets a described list be declared as a table of fields, whose types are in field_types.py. format_codes.py is the table
of constructor bytes that all of them share. read_scalar.py and write_scalar.py do values without others in them,
skip.py steps over a value.
"""
