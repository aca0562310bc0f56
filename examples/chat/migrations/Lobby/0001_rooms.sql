CREATE TABLE rooms (
    room    TEXT PRIMARY KEY,
    owner   TEXT    NOT NULL,
    members INTEGER NOT NULL
) STRICT;
