"""Records of Capture, in Avro: written from stored events, and read as columns."""
