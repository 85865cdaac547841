-- .npy files that are saved: as a whole or not at all.
local each_device = require "spec.each_device"
local files = require "spec.npy_files"
local gpu = require "tidelock"

each_device(".npy files", function(open, id)
  local folder, path
  files.each_folder(function(new)
    folder, path = new, new .. "/x.npy"
  end)

  it("are not made from bfloat16", function()
    local dev = open()
    local b = dev:zeros(3, "bfloat16")
    files.fails("unsupported", path .. ": bfloat16 has no .npy type", b.save, b, path)
    files.only(folder)
  end)

  it("are replaced as a whole, and the permissions stay", function()
    local dev = open()
    dev:full(2, 1):save(path)
    assert.equal("rw-r-----", files.output("umask 027 && " .. files.lua([[
      dev:full(2, 1):save(folder .. "/y.npy")]], folder, id) .. " && ls -l " .. folder ..
      "/y.npy"):match("^%-(%S%S%S%S%S%S%S%S%S)"))
    assert(os.execute("chmod 600 " .. path))
    dev:full(3, 2):save(path)
    assert.same({ 2, 2, 2 }, dev:load_npy(path):totable())
    assert.matches("^%-rw%-%-%-%-%-%-%-", files.output("ls -l " .. path))
    assert(os.execute(("ln -s x.npy %s/link.npy"):format(folder)))
    dev:full(1, 4):save(folder .. "/link.npy")
    assert.same({ 4 }, dev:load_npy(path):totable())
    assert.matches("^l", files.output("ls -l " .. folder .. "/link.npy"))
    files.only(folder, "child.lua", "link.npy", "x.npy", "y.npy")
  end)

  it("stay as they were when a save fails, with nothing beside them", function()
    local faults = gpu.faults()
    local dev = open { faults = faults }
    local b = dev:zeros { 3, 300000 }
    dev:full(2, 5):save(path)
    local before = files.read(path)
    files.fails("io", folder .. "/no/x.npy: No such file or directory", b.save, b,
      folder .. "/no/x.npy")
    for site, count in pairs { ["file write"] = 2, ["read"] = 2, ["allocate: file staging"] = 1 } do
      for nth = 1, count do
        faults:reset()
        faults:arm(site, nth, "io")
        files.fails("io", site .. ": injected failure", b.save, b, path)
        assert.equal(before, files.read(path))
        files.only(folder, "x.npy")
      end
    end
    faults:reset()
    b:save(path)
    assert.equal(128 + b:nbytes(), #files.read(path))
  end)

  it("leave nothing when loading fails half way", function()
    local faults = gpu.faults()
    local dev = open { faults = faults }
    dev:zeros({ 3, 300000 }):save(path)
    for site, count in pairs { ["file read"] = 4, ["write"] = 2, ["allocate: file staging"] = 1,
      ["allocate"] = 1 } do
      for nth = 1, count do
        faults:reset()
        faults:arm(site, nth, "io")
        files.fails("io", site .. ": injected failure", dev.load_npy, dev, path)
        collectgarbage()
        collectgarbage()
        assert.equal(0, dev:memory().live)
      end
    end
  end)

  it("stay as they were when the limit on file sizes is reached", function()
    local dev = open()
    dev:full(2, 5):save(path)
    local before = files.read(path)
    local text = files.output("ulimit -f 64; " .. files.lua([[
      local b = dev:zeros(100000)
      print(pcall(b.save, b, folder .. "/x.npy"))]], folder, id))
    assert.equal("false\t" .. path .. ": File too large\n", text)
    assert.equal(before, files.read(path))
    files.only(folder, "child.lua", "x.npy")
  end)

  it("stay as they were when the disk is full", function()
    local dev = open()
    -- A small disk of the child's own, which goes when it ends.
    local inside = files.lua([[
      dev:full(2, 5):save(folder .. "/disk/x.npy")
      local b = dev:zeros(100000)
      print(pcall(b.save, b, folder .. "/disk/x.npy"))
      print(dev:load_npy(folder .. "/disk/x.npy"):get(2))
      for name in io.popen("ls -A " .. folder .. "/disk"):lines() do print(name) end]],
      folder, id)
    local disk = folder .. "/disk"
    assert(os.execute("mkdir " .. disk))
    local mount = "mount -t tmpfs -o size=64k none " .. disk
    if not os.execute(("unshare -m sh -c %s 2>/dev/null"):format(files.quote(mount))) then
      return pending("needs the right to mount")
    end
    assert.equal("false\t" .. disk .. "/x.npy: No space left on device\n5.0\nx.npy\n",
      files.output(("unshare -m sh -c %s"):format(files.quote(mount .. " && " .. inside))))
    assert.equal(0, dev:memory().live)
  end)

  it("are made of what is allocated within the limits", function()
    local dev = open { memory_limit = 4096 }
    dev:zeros(1000):save(path)
    collectgarbage()
    collectgarbage()
    for _ = 1, 20 do
      assert.equal(0, dev:load_npy(path):get(1000))
    end
    local kept = dev:load_npy(path)
    files.fails("out_of_memory", "", dev.load_npy, dev, path)
    assert.equal(1000, #kept)
  end)
end)
