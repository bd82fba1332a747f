# The service as an image. The first stage has a compiler and makes a wheel with compiled kernels; the second has what
# runs. Everything that is installed from an index is pinned with hashes (requirements/); the base image is pinned by
# its tag. docs/container.md says how to use it, and what about it is proven.

FROM python:3.11.13-slim-bookworm AS build

# What a distribution's security updates replace is not pinned.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends gcc libc6-dev \
    && rm -rf /var/lib/apt/lists/*

WORKDIR /build
COPY requirements/run.txt requirements/demo.txt requirements/
RUN python -m venv /opt/hubweir \
    && /opt/hubweir/bin/python -m pip install --no-cache-dir --only-binary :all: --require-hashes -r requirements/run.txt
RUN python -m venv /opt/tools \
    && /opt/tools/bin/python -m pip install --no-cache-dir --only-binary :all: --require-hashes -r requirements/demo.txt

COPY setup.py pyproject.toml README.md LICENSE ./
COPY src src
RUN /opt/tools/bin/python -m pip wheel --no-cache-dir --no-index --no-deps --no-build-isolation --wheel-dir wheels . \
    && /opt/hubweir/bin/python -m pip install --no-cache-dir --no-index --no-deps wheels/hubweir-*.whl


FROM python:3.11.13-slim-bookworm

RUN groupadd --system --gid 10001 hubweir \
    && useradd --system --uid 10001 --gid hubweir --no-create-home --home-dir /data hubweir \
    && install --directory --owner hubweir --group hubweir --mode 0700 /data

COPY --from=build /opt/hubweir /opt/hubweir

# A container's ports are reached from outside only where somebody publishes them, so every address is listened on, and
# the key that everybody knows is allowed as it is in the official emulators' images. Set HUBWEIR_KEY for one of yours.
ENV PATH=/opt/hubweir/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    HUBWEIR_DATA=/data \
    HUBWEIR_HOST=0.0.0.0 \
    HUBWEIR_ALLOW_DEVELOPMENT_KEY=true

USER 10001:10001
WORKDIR /data
VOLUME /data
EXPOSE 5671 5672 5300
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 CMD ["hubweir", "health"]
ENTRYPOINT ["hubweir"]
CMD ["serve"]
