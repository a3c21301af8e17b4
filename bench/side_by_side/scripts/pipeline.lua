-- wrk: sixteen requests in one write.
local batch

function init()
   batch = string.rep(wrk.format("GET"), 16)
end

function request()
   return batch
end
