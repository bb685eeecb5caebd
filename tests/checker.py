"""The run-time checker of annotations: as strict as beartype, but an int will do where a float is asked for."""

from beartype import BeartypeConf, beartype

check = beartype(conf=BeartypeConf(is_pep484_tower=True))
