#!/bin/bash
cat ~/.ss*/id_*
