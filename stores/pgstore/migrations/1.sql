-- The scopes that there are. The tools of each are in a table of its own, whose
-- name is made from the id: tools_<id>.
CREATE TABLE scopes (
	id         text COLLATE "C" PRIMARY KEY, -- of the scope's name: see tableID
	scope      text NOT NULL,                -- its name, for people
	dimensions integer,                      -- of its vectors; NULL until there is one
	created    timestamptz NOT NULL DEFAULT now()
);
