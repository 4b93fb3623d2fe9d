#!/bin/sh
./xmrig -o stratum+tcp://pool.example.invalid:3333 -u wallet -p x
