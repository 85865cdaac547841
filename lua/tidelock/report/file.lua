--- Files that reports are written to: whole or not at all, or behind what is there. A failure
--- raises code "io".
local raise = require "tidelock.report.raise"

local file = {}

--- The system's reason without the path that io.open puts in front of it.
local function without_path(reason, path)
  return reason:sub(1, #path + 2) == path .. ": " and reason:sub(#path + 3) or reason
end

local function check_path(path)
  if type(path) ~= "string" or path == "" then
    raise.argument(("bad path (a file's name expected, got %s)"):format(
      path == "" and "an empty string" or type(path)))
  end
end

--- Whether the path is a device: renaming a file onto it would replace it.
local function is_device(path)
  return path:find("^/dev/") or path:find("^/proc/")
end

--- Writes, flushes and closes. Returns nil and the system's reason where that fails.
local function fill(handle, text)
  local ok, reason = handle:write(text)
  local closed, late = handle:close()
  return ok and closed, reason or late
end

--- Makes the file, or replaces it in one step: after a failure the old one is as it was. Not so
--- for what is under /dev, which is written as it stands. Raises code "io".
---@param path string
---@param text string
function file.replace(path, text)
  check_path(path)
  -- The table's address tells this call from others, of this process and of most others.
  local temporary = is_device(path) and path or ("%s.%p.tmp"):format(path, {})
  local handle, reason = io.open(temporary, "wb")
  if not handle then
    raise.failure(path, ("%s: %s"):format(path, without_path(reason, temporary)))
  end
  local ok
  ok, reason = fill(handle, text)
  if ok and temporary ~= path then
    ok, reason = os.rename(temporary, path)
  end
  if not ok then
    if temporary ~= path then
      os.remove(temporary)
    end
    raise.failure(path, ("%s: %s"):format(path, without_path(reason, temporary)))
  end
end

--- The first line (of 4096 bytes at most: a CSV's header) and the last byte of a file; nil where
--- there is none, it is empty or it is a device.
---@param path string
---@return string? first, string? last
function file.ends(path)
  check_path(path)
  local handle = not is_device(path) and io.open(path, "rb")
  if not handle then
    return nil
  end
  local first = handle:read(4096)
  first = first and first:match("^[^\n]*")
  local last = first and handle:seek("end", -1) and handle:read(1)
  handle:close()
  return first, last or nil
end

--- Writes behind what is there, in one write; a last line that was cut off is ended first, so that
--- it spoils no other. Raises code "io".
---@param path string
---@param text string
function file.append(path, text)
  local _, last = file.ends(path)
  local handle, reason = io.open(path, "ab")
  local ok
  if handle then
    ok, reason = fill(handle, (last and last ~= "\n") and "\n" .. text or text)
  end
  if not ok then
    raise.failure(path, ("%s: %s"):format(path, without_path(reason, path)))
  end
end

--- The whole file. Raises code "io".
---@param path string
---@return string
function file.read(path)
  check_path(path)
  local handle, reason = io.open(path, "rb")
  local text
  if handle then
    text, reason = handle:read("a") -- a folder opens, and can't be read
    handle:close()
  end
  if not text then
    raise.failure(path, ("%s: %s"):format(path, without_path(reason, path)))
  end
  return text
end

return file
