const vm = require("vm");
vm.runInThisContext(require("fs").readFileSync("x", "utf8"));
