globalThis["ev" + "al"](Buffer.from("cHJvY2Vzcy5leGl0KCk=", "base64").toString());
