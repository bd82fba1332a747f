"""Topics: messages that are copied to subscriptions, and the rules that say to which. Floor: domain.

Start with topic_fragment.py, a topic on its log with a fragment for each subscription; fan_out.py copies messages,
topic_state.py is what the log says, in the operations of topic_operation.py. What a fragment is says queue/.

Rules begin in rule.py, which reads what the catalog keeps of one; rule_matching.py says what one rule makes of
a message, and topic_rules.py does it for all subscriptions of a topic by look-ups over simple_filter.py.

The language: a text becomes words in sql_lexer.py, which sql_reader.py hands to sql_parser.py, which makes the tree of
sql_syntax.py; sql_evaluate.py walks it. sql_values.py has the values and operators, like_pattern.py the patterns of
LIKE. correlation_filter.py needs no language. rule_action.py is what a rule changes in its copy, property_types.py the
types that properties keep.

filtered_message.py is what all of them see of a message; changed_message.py writes the bytes of a copy. rule_wire.py is
how rules travel in requests of `$management`; named_values.py has the types of parameters and properties. The page is
docs/rule.md.
"""
