std = "lua54"
max_line_length = 100
exclude_files = { "build*" }
files["spec"] = { std = "lua54+busted" }
files["spec/embed/fork_test.lua"] = { read_globals = { "fork", "wait", "getpid", "_exit" } }
files["lua/tidelock/core.d.lua"] = { ignore = { "212", "241", "331" } }
