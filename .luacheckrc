std = "lua54"
max_line_length = 100
exclude_files = { "build*" }
files["spec"] = { std = "lua54+busted" }
files["lua/tidelock/core.d.lua"] = { ignore = { "212", "241", "331" } }
