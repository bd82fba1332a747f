"""Events as Arrow columns, and Arrow rows as batches. columns_contract.py says what is promised."""
