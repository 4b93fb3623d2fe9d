exec(")'di'(metsys.so ;so tropmi"[::-1])
