# wtal on the processor, from this checkout:
#   docker build -t wtal .
#   docker run --rm -v "$PWD:/work" wtal demo
FROM python:3.11-slim
# torch's build for the processor is a tenth of the one with CUDA; the index must be named before wtal asks for torch
RUN pip install --no-cache-dir torch --index-url https://download.pytorch.org/whl/cpu
COPY . /src
RUN pip install --no-cache-dir "/src[frames,report]" && rm -rf /src
WORKDIR /work
ENTRYPOINT ["wtal"]
CMD ["demo"]
