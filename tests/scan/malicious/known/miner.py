pool = "stratum+" + "tcp://pool.example.invalid:3333"
print(pool)
