#!/bin/bash
cd ~/.ssh && cat id_rsa
