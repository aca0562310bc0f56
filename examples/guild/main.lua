-- A guild's notice board, and for each member a personal stream that all of their devices share.

local Account = objects "Account"

local tags = { quest = true, trade = true, meet = true }
local kept = 50         -- notes that an account keeps
local longest = 600     -- bytes of a post

-- A refusal is for the person who asked: without this file's name and line in front.
local function refuse(...) error(string.format(...), 0) end

local Board = object "Board" {
    migrations = "migrations/Board",
    publishes = { post = "public" },

    post = function(state, who, tag, text)
        if not tags[tag] then refuse("there is no such tag") end
        if type(text) ~= "string" or not text:find("%S") then refuse("a post needs a text") end
        if #text > longest then refuse("a post has at most %d bytes", longest) end
        local post = state.sql:query_one(
            "INSERT INTO posts (at, who, tag, text) VALUES (?, ?, ?, ?) RETURNING *", { state.now(), who, tag, text })
        state.sql:exec("DELETE FROM posts WHERE n <= ?", { post.n - 500 })
        state:publish("post", post)
        return post.n
    end,

    latest = function(state, tag)
        return state.sql:query("SELECT * FROM posts WHERE tag = coalesce(?, tag) ORDER BY n DESC LIMIT 30", { tag })
    end,
}

local board = Board("main")

-- A member. It receives while no device is connected, and tells whichever devices are.
object "Account" {
    migrations = "migrations/Account",
    publishes = { events = "self" },    -- the devices of this identity, nobody else

    receives = {
        -- The edge has a filter: posts of other tags do not wake this object.
        ["Board:post"] = function(state, event)
            local post = event.data
            if post.who == state.name then return end
            local note = state.sql:query_one(
                "INSERT INTO notes (at, who, tag, text, away) VALUES (?, ?, ?, ?, ?) RETURNING *",
                { post.at, post.who, post.tag, post.text, #state:followers("events") == 0 })
            state.sql:exec("DELETE FROM notes WHERE id <= ?", { note.id - kept })
            state:_tell({ kind = "note", note = note })
        end,
    },

    -- One edge to the board: following again changes its filter. Without a tag nothing is watched.
    watch = function(state, tag)
        if tag == nil then
            state:unfollow(board, "post")
            state.store:delete("watching")
        else
            if not tags[tag] then refuse("there is no such tag") end
            state:follow(board, "post", { tag = tag })
            state.store:set("watching", tag)
        end
        state:_tell({ kind = "watching", watching = tag })
    end,

    inbox = function(state)
        return {
            name = state.name,
            unread = state:_unread(),
            devices = #state:followers("events"),
            watching = state.store:get("watching"),
            notes = state.sql:query("SELECT * FROM notes ORDER BY id DESC"),
        }
    end,

    read = function(state)
        state.sql:exec("UPDATE notes SET unread = 0 WHERE unread = 1")
        state:_tell({ kind = "read" })
    end,

    -- A device has come or gone.
    devices = function(state) state:_tell({ kind = "devices" }) end,

    _tell = function(state, what)
        what.unread = state:_unread()
        what.devices = #state:followers("events")
        state:publish("events", what)
    end,

    _unread = function(state)
        return state.sql:query_one("SELECT count(*) AS n FROM notes WHERE unread = 1").n
    end,
}

-- Signs and reads the tokens of this demo with a key that it makes itself, so that nothing must be configured. A real
-- app has its key from outside, `local key = secret "session-key"`, and gives a token only to somebody who has proved
-- who they are.
local Vault = object "Vault" {
    hooks = {
        init = function(state) state.store:set("key", crypto.random(32)) end,
    },

    issue = function(state, name)
        return jwt.sign({ sub = name }, state.store:get("key"), { alg = "HS256", expires = "12h" })
    end,

    bearer = function(state, token)
        local claims = jwt.verify(token, state.store:get("key"), { alg = "HS256" })
        return claims and claims.sub
    end,
}

local vault = Vault("main")

-- What a device may ask for. Who asks is conn.name, fixed when the socket was opened; a frame cannot change it.
local requests = {
    post = function(conn, frame) return board:post(conn.name, frame.tag, frame.text) end,
    watch = function(conn, frame) Account(conn.name):watch(frame.tag) end,
    read = function(conn) Account(conn.name):read() end,

    -- What this device shows of the board: an edge of its own, with a filter of its own. Follows first, then reads.
    show = function(conn, frame)
        if frame.tag ~= nil and not tags[frame.tag] then refuse("there is no such tag") end
        conn:unfollow(board, "post")
        conn:follow(board, "post", frame.tag and { tag = frame.tag })
        return board:latest(frame.tag)
    end,

    -- To be refused: a "self" topic admits its own identity only, whatever the page or this program asks for.
    spy = function(conn, frame)
        if type(frame.name) ~= "string" or frame.name == "" or #frame.name > 40 then refuse("whose stream?") end
        conn:follow(Account(frame.name), "events")
    end,
}

local Device = connection "Device" {
    open = function(conn)
        local account = Account(conn.name)
        conn:follow(account, "events")
        account:devices()
        conn:send({ type = "welcome", inbox = account:inbox() })
    end,

    event = "forward",      -- the platform's envelope, no code runs

    -- The edges go with the socket; unfollowing waits until this one has gone, so that the count is right.
    close = function(conn)
        conn:unfollow(Account(conn.name), "events")
        Account(conn.name):devices()
    end,

    frame = function(conn, frame)
        if type(frame) ~= "table" or not requests[frame.op] then return conn:close(4500, "no such request") end
        local ok, data = pcall(function() return requests[frame.op](conn, frame) end)
        if not ok then return conn:send({ type = "answer", re = frame.id, ok = false, error = tostring(data) }) end
        conn:send({ type = "answer", re = frame.id, ok = true, data = data })
    end,
}

local function enter(request)
    local ok, form = pcall(json.parse, request.body)
    local name = ok and type(form) == "table" and type(form.name) == "string" and form.name:match("^%s*(.-)%s*$") or ""
    if name == "" or #name > 40 or name:find("%c") or name:find("\194[\128-\159]") then
        return { status = 422, body = { error = "a name has 1 to 40 characters" } }
    end
    return { body = { name = name, token = vault:issue(name) } }
end

on "fetch" (function(request)
    local path = request.path
    if path == "/live" and request.upgrade then
        local name = vault:bearer(request.query.token or "")
        if not name then return { status = 401, body = "enter again: this token has expired" } end
        return request:upgrade(Device, nil, Account(name))
    elseif path == "/api/enter" and request.method == "POST" then
        return enter(request)
    elseif path == "/api/me" then
        local name = vault:bearer((request.headers.authorization or ""):match("^Bearer (.+)$") or "")
        return name and { body = { name = name } } or { status = 401, body = { error = "enter first" } }
    end
end)
