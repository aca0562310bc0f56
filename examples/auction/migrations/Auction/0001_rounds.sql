-- Times are Unix milliseconds, amounts whole pounds.
CREATE TABLE rounds (
    round   INTEGER PRIMARY KEY,
    opened  INTEGER NOT NULL,
    ends    INTEGER NOT NULL,
    closed  INTEGER,            -- when the hammer fell
    reopens INTEGER             -- when the next round begins
) STRICT;

CREATE TABLE bids (
    id     INTEGER PRIMARY KEY,
    round  INTEGER NOT NULL REFERENCES rounds (round) ON DELETE CASCADE,
    at     INTEGER NOT NULL,
    bidder TEXT    NOT NULL,
    amount INTEGER NOT NULL,
    UNIQUE (round, amount)
) STRICT;
