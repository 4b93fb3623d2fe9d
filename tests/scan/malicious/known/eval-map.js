['x'].map(eval)
